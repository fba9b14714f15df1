/** Requests to the server of this page. Every answer is typed by the server's OpenAPI document. */

import { reportReachable } from "./connection";

const KEY = "downriver.key";

/** A request that the server refused, with its message. `near` are similar names. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly near: readonly string[] = [],
  ) {
    super(message);
  }
}

interface ErrorBody {
  error?: string;
  detail?: string;
  near?: string[];
  candidates?: string[];
}

type Parameter = string | number | boolean | null | undefined | readonly string[];
export type Parameters = Record<string, Parameter>;

const keyListeners = new Set<() => void>();

export function accessKey(): string | null {
  return sessionStorage.getItem(KEY);
}

export function setAccessKey(key: string | null): void {
  if (key === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, key);
  for (const listener of keyListeners) listener();
}

export function onKeyChange(listener: () => void): () => void {
  keyListeners.add(listener);
  return () => keyListeners.delete(listener);
}

export function urlOf(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || value === "") continue;
    if (typeof value === "object") for (const one of value) query.append(name, one);
    else query.set(name, String(value));
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const key = accessKey();
  if (key !== null) headers.set("Authorization", `Bearer ${key}`);
  const response = await reach(path, { ...init, headers });
  if (!response.ok) throw await errorOf(response);
  return response;
}

/** A request that notes whether the server could be reached at all. */
async function reach(path: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(path, init);
    reportReachable(true);
    return response;
  } catch (error) {
    if (!init.signal?.aborted) reportReachable(false);
    throw error;
  }
}

export async function get<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  const response = await request(urlOf(path, parameters), { signal: signal ?? null });
  return (await response.json()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: signal ?? null,
  });
  return (await response.json()) as T;
}

async function errorOf(response: Response): Promise<ApiError> {
  const fallback = `The server answered ${response.status}.`;
  try {
    const body = (await response.json()) as ErrorBody;
    const near = [...(body.near ?? []), ...(body.candidates ?? [])];
    return new ApiError(response.status, body.error ?? "", body.detail ?? fallback, near);
  } catch {
    return new ApiError(response.status, "", fallback);
  }
}
