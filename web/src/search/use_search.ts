import { useEffect, useState } from "react";
import { useGet } from "../api/queries";
import type { SearchPage } from "../api/types";
import { parseQuery, type SearchQuery } from "./query";

/** A value that follows another once it has not changed for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** The hits for the typed text at a moment. Without text, no request is sent. */
export function useSearchHits(typed: string, asOf: string | undefined, limit = 40) {
  const query: SearchQuery = parseQuery(useSettled(typed, 120));
  const asked = query.text !== "" || Object.keys(query.filters).length > 0;
  const answer = useGet<SearchPage>("/v1/search", { text: query.text, ...query.filters, limit, as_of: asOf }, asked);
  return { query, asked, answer };
}
