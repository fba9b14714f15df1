import { createContext, useContext } from "react";

const Context = createContext<() => void>(() => undefined);

export const OpenSearch = Context.Provider;

/** Opens the search in front of the page. */
export function useOpenSearch(): () => void {
  return useContext(Context);
}
