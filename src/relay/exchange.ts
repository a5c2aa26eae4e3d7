import type { JsonRpcId } from '../wire/frame.ts';
import type { Lane } from './ports.ts';

/** One request of the client that has not been answered yet, and the lane its messages travel on. */
export class Exchange {
  readonly id: JsonRpcId;
  readonly method: string;
  readonly lane: Lane;

  constructor(id: JsonRpcId, method: string, lane: Lane) {
    this.id = id;
    this.method = method;
    this.lane = lane;
  }
}
