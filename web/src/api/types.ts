/** The types of answers by their short names. */

export type * from "./schema";

export type Facet = Record<string, number>;
