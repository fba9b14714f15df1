/** Server state: one cache for all pages, refetched when the server has news. */

import { QueryClient, useMutation, useQuery, useQueryClient, keepPreviousData, type UseMutationResult, type UseQueryResult } from "@tanstack/react-query";
import { useEffect } from "react";
import { ApiError, accessKey, get, onKeyChange, post, type Parameters } from "./client";
import type { Me } from "./types";

const BUSY = 503;

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      retry: (count, error) => (!(error instanceof ApiError) || error.status === BUSY) && count < 2,
    },
  },
});

onKeyChange(() => void queryClient.resetQueries());

/** The answer of a GET. During a new request, the last answer stays. */
export function useGet<T>(path: string, parameters: Parameters = {}, enabled = true): UseQueryResult<T> {
  return useQuery({
    queryKey: [path, parameters],
    queryFn: ({ signal }) => get<T>(path, parameters, signal),
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** The answer of a POST that changes nothing on the server. */
export function useAnswer<T>(path: string, body: unknown, enabled = true): UseQueryResult<T> {
  return useQuery({
    queryKey: [path, body],
    queryFn: ({ signal }) => post<T>(path, body, signal),
    placeholderData: keepPreviousData,
    enabled,
  });
}

/** A request that changes the store. The data on screen is requested again afterwards. */
export function useChange<Input, Answer>(send: (input: Input) => Promise<Answer>): UseMutationResult<Answer, Error, Input> {
  const client = useQueryClient();
  return useMutation({ mutationFn: send, onSuccess: () => client.invalidateQueries() });
}

const ROLES = ["reader", "writer", "admin"];

/** Whether the key of this tab has a role, or one that includes it. False until it is known. */
export function useMay(role: "writer" | "admin"): boolean {
  const me = useGet<Me>("/v1/me");
  return me.data !== undefined && ROLES.indexOf(me.data.role) >= ROLES.indexOf(role);
}

interface News {
  head: number;
}

/** Wait for new events on the server, then reload the data on screen. */
export function useNews(): void {
  const client = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    void followNews(client, stop.signal);
    return () => stop.abort();
  }, [client]);
}

async function followNews(client: QueryClient, signal: AbortSignal): Promise<void> {
  let head: number | undefined;
  let failed = false;
  while (!signal.aborted) {
    try {
      const news = await get<News>("/v1/news", head === undefined || failed ? {} : { head, wait: 20 }, signal);
      if (failed || (head !== undefined && news.head !== head)) await client.invalidateQueries();
      head = news.head;
      failed = false;
    } catch (error) {
      if (signal.aborted) return;
      failed = true;
      await pause(error instanceof ApiError && error.status === 401 ? untilKeyChanges() : after(RETRY_MS));
    }
  }
}

const RETRY_MS = 3_000;
const pause = (reason: Promise<void>) => reason;
const after = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds));

function untilKeyChanges(): Promise<void> {
  const before = accessKey();
  return new Promise((done) => {
    const stop = onKeyChange(() => {
      if (accessKey() === before) return;
      stop();
      done();
    });
  });
}
