export type Filling = string;
export function makeValue(filling: Filling, bytes: number): string;
export function makeMembers(filling: Filling, bytes: number): string;
