"""Data flows in the driver of a Spark application that Spark's plans do not contain."""
