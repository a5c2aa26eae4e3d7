/** Counts what was asked and what came of it. */
export class Tally {
  asked = 0;
  answered = 0;
  /** No answer, or an error instead of one. */
  lost = 0;
  /** Somebody else's answer. */
  crossed = 0;
  /** Asked by those who left before the answer, on purpose. */
  abandoned = 0;
  sessions = 0;
  /** The first few things that went wrong, in words. */
  readonly examples: string[] = [];

  fail(kind: 'lost' | 'crossed', example: string): void {
    this[kind] += 1;
    if (this.examples.length < 5) this.examples.push(`${kind}: ${example.slice(0, 300)}`);
  }

  toString(): string {
    const { sessions, asked, answered, abandoned, lost, crossed } = this;
    return `${sessions} sessions, ${asked} calls, ${answered} answered, ${abandoned} abandoned, ${lost} lost, ${crossed} crossed`;
  }
}
