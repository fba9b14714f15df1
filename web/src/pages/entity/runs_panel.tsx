import { useState } from "react";
import { useGet } from "../../api/queries";
import type { EntityView, Runs } from "../../api/types";
import { Loaded } from "../../design/page";
import { Button, Empty, Panel } from "../../design/parts";
import { RunCharts, RunTable } from "../../design/runs";
import styles from "./entity.module.css";

export function RunsPanel({ entity }: { entity: EntityView }) {
  const [pages, setPages] = useState<readonly (string | undefined)[]>([undefined]);
  const before = pages.at(-1);
  const answer = useGet<Runs>("/v1/runs", { entity: entity.id, limit: 50, before });
  return (
    <Panel flush label="Runs">
      <Loaded query={answer} height={300}>
        {(data) =>
          data.runs.length === 0 ? (
            <Empty title="No run is known">Events with a run appear here: OpenLineage clients send them when a job starts and ends.</Empty>
          ) : (
            <>
              <RunCharts runs={data.runs} />
              <RunTable runs={data.runs} label="Runs" withJob={entity.kind !== "job"} />
              <div className={styles.pages}>
                <Button disabled={pages.length === 1} onClick={() => setPages(pages.slice(0, -1))}>Newer</Button>
                <Button disabled={!data.next_before} onClick={() => setPages([...pages, data.next_before ?? undefined])}>Older</Button>
              </div>
            </>
          )
        }
      </Loaded>
    </Panel>
  );
}
