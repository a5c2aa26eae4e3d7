/** A copy with memory of its own: keeping a part of what was read keeps all that was read with it. */
export function ownBytes(bytes: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}
