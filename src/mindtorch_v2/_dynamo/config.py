"""Settings of torch's compiler that programs set. They are stored and have no effect."""

suppress_errors: bool = False
cache_size_limit: int = 8
recompile_limit: int = 8
verbose: bool = False
dynamic_shapes: bool = True
automatic_dynamic_shapes: bool = True
assume_static_by_default: bool = True
capture_scalar_outputs: bool = False
