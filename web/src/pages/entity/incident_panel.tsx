import { useGet } from "../../api/queries";
import type { EntityView, Incident } from "../../api/types";
import { FindingList } from "../../design/findings";
import { formatAge, plural, withTimes } from "../../design/format";
import { BlindSpots, EntityLink, LinkedText, Loaded, Owners, Table } from "../../design/page";
import { Badge, CopyButton, Empty, Panel, type Tone } from "../../design/parts";
import styles from "./entity.module.css";

const TONES: Record<Incident["status"], Tone> = { failing: "breaking", drifting: "warning", healthy: "safe" };

/** The failures of an entity, the possible causes, and what is affected. */
export function IncidentPanel({ entity }: { entity: EntityView }) {
  const answer = useGet<Incident>("/v1/incidents", { entity: entity.id });
  return (
    <Loaded query={answer} height={240}>
      {(incident) => (
        <>
          <Panel title={<Badge tone={TONES[incident.status]}>{incident.status}</Badge>} actions={<CopyButton text={textOf(incident)} label="Copy report" />} label="Incident report">
            <p><LinkedText text={withTimes(incident.summary)} ids={incident.suspects.map((suspect) => suspect.id)} /></p>
            <p className={styles.muted}>
              Last success: {incident.last_success ? formatAge(incident.last_success) : "none is known"}. {plural(incident.looked_at, "entity", "entities")} upstream examined.
              {incident.owners_to_tell.length ? ` Notify ${incident.owners_to_tell.join(", ")}.` : ""}
            </p>
            <BlindSpots spots={incident.blind_spots} />
          </Panel>
          {incident.failures.length ? <Panel title="Failures" flush label="Failures"><FindingList findings={incident.failures} /></Panel> : null}
          <Panel title="Possible causes, the likeliest first" flush label="Possible causes">
            {incident.suspects.length === 0 ? <Empty title="No possible cause upstream" /> : (
              <Table label="Possible causes" head={["Entity", "Score", "Distance", "Reasons", "Since", "Owners"]} numeric={[1, 2]}>
                {incident.suspects.map((suspect) => (
                  <tr key={suspect.id}>
                    <td><EntityLink id={suspect.id} /></td>
                    <td data-numeric>{suspect.score.toFixed(2)}</td>
                    <td data-numeric>{suspect.distance}</td>
                    <td className={styles.text}>{withTimes(suspect.reasons.join("; "))}</td>
                    <td>{formatAge(suspect.since)}</td>
                    <td><Owners owners={suspect.owners ?? []} /></td>
                  </tr>
                ))}
              </Table>
            )}
          </Panel>
          <Panel title={`Affected: ${incident.affected_count}`} flush label="Affected">
            {incident.affected.length === 0 ? <Empty title="Nothing downstream is affected" /> : (
              <Table label="Affected" head={["Entity", "Distance", "Owners"]} numeric={[1]}>
                {incident.affected.map((affected) => (
                  <tr key={affected.id}><td><EntityLink id={affected.id} /></td><td data-numeric>{affected.depth}</td><td><Owners owners={affected.owners ?? []} /></td></tr>
                ))}
              </Table>
            )}
          </Panel>
        </>
      )}
    </Loaded>
  );
}

function textOf(incident: Incident): string {
  const lines = [incident.summary, ...incident.suspects.map((suspect, at) => `${at + 1}. ${suspect.id}: ${suspect.reasons.join("; ")}`)];
  return [...lines, `Affected: ${incident.affected_count}`, incident.complete ? "Complete." : "Not complete."].join("\n");
}
