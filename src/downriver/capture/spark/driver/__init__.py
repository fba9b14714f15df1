"""What the driver of a Spark application does outside of the plans of Spark."""
