package downriver;

import org.apache.spark.sql.catalyst.optimizer.CollapseProject;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandResultExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.adaptive.QueryStageExec;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import scala.collection.Seq;

/**
 * What capture reads of every query, as one text each: a call from Python is a round trip.
 *
 * Compiled at run time by Spark's own compiler (Janino), which knows no generics and no lambdas.
 */
public class PlanText {
  private static final String BREAK = "\u0001";
  private static final String PART = "\u0002";
  private static final int MOST_LEAVES = 200;

  /** Returns the output, tree, schema, JSON and leaves of a plan whose projections are merged. */
  public String plan(LogicalPlan query, boolean merged, int largest, int widest) {
    String output = ((Seq) query.output()).mkString(BREAK);
    if (((Seq) query.output()).size() >= widest) {
      return output + PART + PART + PART + PART + PART + PART;
    }
    LogicalPlan plan = merged ? CollapseProject.apply(query) : query;
    String tree = plan.numberedTreeString();
    long width = Math.max(1, ((Seq) query.output()).size());
    String json = "";
    String error = "";
    if (lines(tree) * width <= largest) {
      try {
        json = plan.toJSON();
      } catch (Throwable thrown) {
        error = String.valueOf(thrown.getMessage());
      }
    }
    return output + PART + tree + PART + query.schema().json() + PART + json + PART + error
        + PART + leaves(plan) + PART + ((Seq) plan.subqueriesAll()).isEmpty();
  }

  /** Returns the table, path, format, mode and columns of a write of files. */
  public String files(InsertIntoHadoopFsRelationCommand command) {
    return command.catalogTable().isDefined()
        + PART + command.outputPath() + PART + command.fileFormat().getClass().getName()
        + PART + command.mode() + PART + ((Seq) command.outputColumnNames()).mkString(BREAK);
  }

  /** Returns the metrics of an executed plan, then the output and the metrics of each scan. */
  public String counts(SparkPlan executed) {
    SparkPlan plan = inner(executed);
    StringBuilder text = new StringBuilder(plan.metrics().mkString(BREAK));
    scans(plan, text, 0);
    return text.toString();
  }

  private static int scans(SparkPlan plan, StringBuilder text, int before) {
    Seq leaves = (Seq) plan.collectLeaves();
    int seen = before;
    for (int at = 0; at < leaves.size() && seen < MOST_LEAVES; at++) {
      SparkPlan leaf = (SparkPlan) leaves.apply(at);
      seen++;
      if (leaf instanceof AdaptiveSparkPlanExec || leaf instanceof QueryStageExec) {
        seen = scans(inner(leaf), text, seen);
      } else if (leaf.getClass().getName().endsWith("ScanExec")) {
        text.append(PART).append(((Seq) leaf.output()).mkString(BREAK));
        text.append(PART).append(leaf.metrics().mkString(BREAK));
      }
    }
    return seen;
  }

  /** Returns the plan inside the wrappers of adaptive execution and eager commands. */
  private static SparkPlan inner(SparkPlan given) {
    SparkPlan plan = given;
    while (true) {
      if (plan instanceof AdaptiveSparkPlanExec) {
        plan = ((AdaptiveSparkPlanExec) plan).executedPlan();
      } else if (plan instanceof QueryStageExec) {
        plan = ((QueryStageExec) plan).plan();
      } else if (plan instanceof CommandResultExec) {
        plan = ((CommandResultExec) plan).commandPhysicalPlan();
      } else {
        return plan;
      }
    }
  }

  private static String leaves(LogicalPlan plan) {
    Seq leaves = (Seq) plan.collectLeaves();
    StringBuilder text = new StringBuilder();
    for (int at = 0; at < leaves.size(); at++) {
      String name = leaves.apply(at).getClass().getName();
      text.append(at == 0 ? "" : BREAK).append(name).append(" ").append(leaves.apply(at));
    }
    return text.toString();
  }

  private static long lines(String text) {
    long lines = 0;
    for (int at = 0; at < text.length(); at++) {
      lines += text.charAt(at) == '\n' ? 1 : 0;
    }
    return lines;
  }
}
