"""From a config file and a command line to an mmengine runner."""
