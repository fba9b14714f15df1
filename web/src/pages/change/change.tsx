import { useEffect, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { useAnswer, useGet } from "../../api/queries";
import type { EntityView, Popular, Preview } from "../../api/types";
import { AsOf, Page } from "../../design/page";
import { plural } from "../../design/format";
import { Icon, iconOf } from "../../design/icons";
import { Empty, ErrorState, Panel, Skeleton } from "../../design/parts";
import { rememberEntity } from "../../shell/recent";
import { changePath } from "../../shell/routes";
import { useSettled } from "../../search/use_search";
import { bodyOf, parseProposal, renderProposal, type Proposal } from "./proposal";
import { ProposalForm } from "./proposal_form";
import { VerdictReport } from "./verdict_report";
import styles from "./change.module.css";

/** Propose changes and see what they break, before they are made. */
export default function Change() {
  const [address, setAddress] = useSearchParams();
  const [proposal, setProposal] = useState<Proposal>(() => parseProposal(address));
  const entity = useGet<EntityView>("/v1/entity", { entity: proposal.entity }, proposal.entity !== "");

  // The address follows the proposal; Back and links lead to another one.
  const shown = renderProposal(proposal).toString();
  useEffect(() => setAddress(renderProposal(proposal), { replace: true }), [shown]); // eslint-disable-line
  useEffect(() => {
    const wanted = parseProposal(address);
    if (wanted.entity !== proposal.entity && address.has("entity")) setProposal(wanted);
  }, [address]); // eslint-disable-line
  useEffect(() => {
    if (entity.data) rememberEntity(entity.data);
  }, [entity.data]);

  const body = useSettled(bodyOf(proposal), 250);
  const preview = useAnswer<Preview>("/v1/preview", body, body !== null);
  const known = entity.data?.id === proposal.entity || entity.data?.name === proposal.entity ? entity.data : undefined;

  return (
    <Page title="What if" lead="Propose a change and see which consumers break, before it is made. Nothing is recorded.">
      <div className={styles.layout}>
        <div className={styles.form}>
          {proposal.asOf && proposal.form === "changes" ? (
            <AsOf at={proposal.asOf} leave={() => setProposal({ ...proposal, asOf: "" })} />
          ) : null}
          <ProposalForm proposal={proposal} change={setProposal} entity={known ?? entity.data} />
        </div>
        <div className={styles.answer} aria-live="polite" aria-busy={preview.isFetching}>
          {entity.error && proposal.form === "changes" ? (
            <Panel><ErrorState error={entity.error} /></Panel>
          ) : preview.error && body !== null ? (
            <Panel><ErrorState error={preview.error} retry={() => void preview.refetch()} /></Panel>
          ) : body === null ? (
            <Nothing proposal={proposal} />
          ) : preview.data ? (
            <VerdictReport preview={preview.data} stale={preview.isPlaceholderData} editable={proposal.form !== "diff"} asOf={(proposal.form === "changes" && proposal.asOf) || undefined} />
          ) : (
            <div data-loading className={styles.waiting}>
              <Skeleton height={116} />
              <Skeleton height={300} />
              <Skeleton height={200} />
            </div>
          )}
        </div>
      </div>
    </Page>
  );
}

function Nothing({ proposal }: { proposal: Proposal }) {
  const popular = useGet<Popular>("/v1/popular", { limit: 8 });
  const offered = proposal.form === "changes" && !proposal.entity ? (popular.data?.datasets ?? []) : [];
  const title = proposal.form === "changes" ? (proposal.entity ? "Complete a change to see its effects" : "Choose a dataset") : "Paste your change on the left";
  return (
    <Panel>
      <Empty title={title}>
        The verdict of the policy, every affected consumer with its reason and place in the code, and a patch appear here as you type.
      </Empty>
      {offered.length ? (
        <div className={styles.offered}>
          <h3>Most read</h3>
          <ul>
            {offered.map((dataset) => (
              <li key={dataset.id}><Link href={changePath(dataset.id)} title={dataset.id}><Icon name={iconOf(dataset.type)} size={14} />{dataset.label}<small>{plural(dataset.readers, "reader")}</small></Link></li>
            ))}
          </ul>
        </div>
      ) : null}
    </Panel>
  );
}
