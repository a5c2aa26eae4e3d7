/** Limits of what a server may ask its client in one call, which are the same in both directions of translation. */

/** A server that asks more at once than this is not asking a person. */
export const MAX_ASKED_AT_ONCE = 100;
/** Times that a server may ask again once it has its answers. */
export const MAX_ROUNDS = 10;
/** Time from the first question of a call to the end of the call, whatever progress is reported. */
export const MAX_ASKING_MS = 30 * 60_000;
