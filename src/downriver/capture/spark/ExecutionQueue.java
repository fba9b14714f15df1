package downriver;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

/**
 * The SQL executions of all sessions of an application, in the order in which they end.
 *
 * Compiled at run time by Spark's own compiler (Janino), which knows no generics and no lambdas.
 * Events of jobs, stages and tasks stay in the JVM, and the listener bus never waits for Python.
 */
public class ExecutionQueue extends SparkListener {
  private static final String BREAK = "\u0001";
  private static final String LEARNING = "org.apache.spark.ml."; // in a call site
  private final LinkedBlockingQueue lines = new LinkedBlockingQueue();
  private final Map roots = new ConcurrentHashMap();
  private final Map learning = new ConcurrentHashMap();
  private final Map ends = new ConcurrentHashMap();

  public void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof SparkListenerSQLExecutionStart) {
      SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
      Object own = Long.valueOf(start.executionId());
      roots.put(own, start.rootExecutionId().isDefined() ? start.rootExecutionId().get() : own);
      if (start.details().contains(LEARNING)) {
        learning.put(own, own);
      }
    } else if (event instanceof SparkListenerSQLExecutionEnd) {
      add((SparkListenerSQLExecutionEnd) event);
    }
  }

  private void add(SparkListenerSQLExecutionEnd end) {
    Object own = Long.valueOf(end.executionId());
    Object root = roots.remove(own);
    QueryExecution execution = end.qe();
    LogicalPlan plan = analysed(execution);
    if (plan != null) {
      ends.put(own, end);
    }
    lines.add(
        own + BREAK + (root == null ? own : root)
            + BREAK + (end.executionName().isDefined() ? end.executionName().get() : "")
            + BREAK + end.duration() + BREAK + end.time()
            + BREAK + (plan == null ? "" : execution.sparkSession().sessionUUID())
            + BREAK + (execution == null ? "" : execution.getClass().getName())
            + BREAK + (plan == null ? "" : plan.getClass().getName())
            + BREAK + (plan instanceof Command)
            + BREAK + end.executionFailure().isDefined()
            + BREAK + (learning.remove(own) != null));
  }

  /** Returns the analysed plan, or null for a query that could not be analysed. */
  private static LogicalPlan analysed(QueryExecution execution) {
    if (execution == null) {
      return null;
    }
    try {
      return execution.analyzed();
    } catch (Throwable error) {
      return null;
    }
  }

  /** Waits for the next line: an execution that ended, or what was added by `mark`. */
  public String next() throws InterruptedException {
    return (String) lines.take();
  }

  public void mark(String text) {
    lines.add(text);
  }

  /** Returns the error of an execution that failed. */
  public Throwable error(long id) {
    SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) ends.get(Long.valueOf(id));
    return (Throwable) end.executionFailure().get();
  }

  /** Returns an execution, and keeps it no longer. */
  public QueryExecution take(long id) {
    return ((SparkListenerSQLExecutionEnd) ends.remove(Long.valueOf(id))).qe();
  }
}
