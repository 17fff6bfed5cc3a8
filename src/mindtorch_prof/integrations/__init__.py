"""Callbacks for training frameworks. Each module imports the framework that the user has; none is needed by the package."""
