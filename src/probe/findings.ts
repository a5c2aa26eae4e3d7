import type { Authorization, Offer } from './report.ts';
import type { StepLog } from './step-log.ts';

/** Collects what is found while it is being found; when the time is up, what is there counts. */
export class Findings {
  readonly offers: Offer[] = [];
  readonly problems: string[] = [];
  readonly steps: StepLog;
  authorization: Authorization | undefined = undefined;

  constructor(steps: StepLog) {
    this.steps = steps;
  }

  offer<Draft extends Offer>(draft: Draft): Draft {
    this.offers.push(draft);
    return draft;
  }

  problem(sentence: string): void {
    if (!this.problems.includes(sentence)) this.problems.push(sentence);
  }
}
