import type { OfferDraft } from './offer-draft.ts';
import type { Authorization } from './report.ts';
import type { StepLog } from './step-log.ts';

/** Collects what is found while it is being found; when the time is up, what is there counts. */
export class Findings {
  readonly offers: OfferDraft[] = [];
  readonly problems: string[] = [];
  readonly steps: StepLog;
  authorization: Authorization | undefined = undefined;

  constructor(steps: StepLog) {
    this.steps = steps;
  }

  offer(draft: OfferDraft): OfferDraft {
    this.offers.push(draft);
    return draft;
  }

  problem(sentence: string): void {
    if (!this.problems.includes(sentence)) this.problems.push(sentence);
  }
}
