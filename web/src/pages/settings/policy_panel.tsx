import { useGet } from "../../api/queries";
import type { ServerPolicy } from "../../api/types";
import { Loaded, Prose, Table } from "../../design/page";
import { Badge, Panel } from "../../design/parts";
import { DecisionBadge } from "../verdicts/verdict_list";
import styles from "./settings.module.css";

/** The label of rules that have several decisions. */
const UNDECIDED: Record<string, string> = { protected_data: "By tag" };

/** The rules of a verdict, in the order in which they are checked. */
export function PolicyPanel() {
  const policy = useGet<ServerPolicy>("/v1/policy");
  return (
    <Panel title="Policy" flush label="Policy">
      <Loaded query={policy}>
        {(data) => (
          <>
            <p className={styles.note}>The strictest finding decides. {data.source ? <>Read from <code>{data.source}</code>.</> : "This is the default policy."}</p>
            <Table label="Rules" head={["Rule", "Decision", "Meaning"]}>
              {data.rules.map((rule) => (
                <tr key={rule.name}>
                  <td><code>{rule.name}</code></td>
                  <td>{rule.decision ? <DecisionBadge decision={rule.decision} /> : <Badge>{UNDECIDED[rule.name] ?? "off"}</Badge>}</td>
                  <td><Prose text={rule.explanation} /></td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Loaded>
    </Panel>
  );
}
