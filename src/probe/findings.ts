import type { BridgeError } from '../errors.ts';
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

  /** Why something ended, with the code to look it up by. */
  failure({ message, code }: BridgeError): void {
    this.problem(`${message} (${code})`);
  }

  problem(sentence: string): void {
    if (!this.problems.includes(sentence)) this.problems.push(sentence);
  }
}
