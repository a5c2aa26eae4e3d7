import type { Fields } from '../../mcp/vocabulary/payload.ts';
import type { RpcError } from '../../mcp/vocabulary/rpc-errors.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import type { Exchange, Lane } from '../exchange.ts';
import type { InitializeResult } from './initialize-result.ts';

/**
 * Makes a shared server one client's own: whoever has a link to it acts for that client. What is hidden where several
 * clients share, because it names no owner, is not hidden. What the server asks still goes only to the call that caused
 * it.
 */
export interface SoleOwner {
  /** The lane of everything that is sent to the server, whichever call it is for. */
  readonly lane: Lane;
  /** What the server is told in `initialize`. */
  readonly capabilities: Fields;
  /** True: a server of this kind was told the wrong thing; `capabilities` is another now, and it must be told anew. */
  redeclare(result: InitializeResult): boolean;
  /** Why nobody may be asked this; undefined: somebody may. */
  refuse(question: Frame): RpcError | undefined;
  /** The exchange that a message comes with is the call it belongs to, and not only a hint. */
  readonly knowsByStream: boolean;
  /** The call within which the server says this, if the message itself names one; `unknown`: one that is over. */
  callOf(question: Frame): Exchange | 'unknown' | undefined;
  /** A call is asked something, or would be if it were known which. */
  asked(): void;
  /** It is not said which: only being the one that could be meant tells. */
  unplaced(): void;
  /** The server may ask something in a call that was given up, so that what it asks may be that call's. */
  readonly mindsGivenUp: boolean;
  /** Called when a call was given up that the server may still ask something in. */
  doubtful(): void;
  /** A request of the server while no call is open that could be asked. `reply` is called once, or not at all. */
  takeOrphan(question: Frame, reply: (answer: Frame) => void): void;
  orphanWithdrawn(id: JsonRpcId): void;
  elicitationCompleted(elicitationId: string): void;
  /** The server announces that one of its lists has changed; all clients hear of it, too. */
  listChanged(method: string | undefined): void;
  /** A child has answered the handshake. */
  served(result: InitializeResult): void;
  /** The child that served is gone, and with it whatever it had asked. */
  lost(): void;
}
