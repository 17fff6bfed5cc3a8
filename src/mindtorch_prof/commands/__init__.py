"""Sub-commands of mindtorch-prof, one module each: `prepare_parser(parser)`, `run(options) -> exit code`."""
