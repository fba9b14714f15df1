import { useGet } from "../../api/queries";
import type { ColumnTags, DatasetTags } from "../../api/types";

type Found = ColumnTags["reached"][number];

/** The tags that propagate to a column of a dataset from other columns. */
export function useReaching(dataset: string): (column: string) => readonly Found[] {
  const tags = useGet<DatasetTags>("/v1/tags/columns", { dataset });
  const byName = new Map((tags.data?.columns ?? []).map(({ column, reached }) => [column.slice(column.lastIndexOf(":") + 1), reached]));
  return (column) => byName.get(column) ?? [];
}
