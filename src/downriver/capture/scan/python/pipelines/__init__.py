"""Jobs of frameworks that declare the inputs and outputs of Python functions: Kedro, Luigi."""
