import { BridgeError, UNCLEAR } from '../../errors.ts';
import { rewriteProgress, rewriteRequest, rewriteServerCanceled } from '../../mcp/classify/correlators.ts';
import { type Frame, idToken, type JsonRpcId, withId } from '../../wire/frame.ts';

/** Questions that one server may have open, so that it leaves the client time for those of others. */
const MAX_OPEN = 100;

interface Open<Asker> {
  readonly asker: Asker;
  /** The server's id, as it wrote it. */
  readonly id: Buffer;
  readonly serverId: JsonRpcId;
  /** The progress token as the server wrote it. */
  readonly progressToken: Buffer | undefined;
}

/** Open requests of several servers to one client. The servers choose their ids alike, so the client gets others. */
export class QuestionTable<Asker> {
  readonly #open = new Map<JsonRpcId, Open<Asker>>();
  readonly #counts = new Map<Asker, number>();
  #lastId = 0;

  /** Returns the question as the client gets it, or the reason why it cannot be asked. */
  ask(asker: Asker, question: Frame): Frame | BridgeError {
    const count = this.#counts.get(asker) ?? 0;
    if (count >= MAX_OPEN) return TOO_MANY;
    this.#lastId += 1;
    const rewritten = rewriteRequest(question, this.#lastId);
    if (question.id === undefined || rewritten === undefined) return UNCLEAR;
    const { progressToken } = rewritten;
    this.#counts.set(asker, count + 1);
    this.#open.set(this.#lastId, { asker, id: idToken(question), serverId: question.id, progressToken });
    return rewritten.frame;
  }

  /** Returns the answer as the server gets it. Undefined if the client was not asked this. */
  answer(answer: Frame): { readonly asker: Asker; readonly frame: Frame } | undefined {
    const open = answer.id === undefined ? undefined : this.#open.get(answer.id);
    if (open === undefined) return undefined;
    this.#close(answer.id as JsonRpcId, open);
    return { asker: open.asker, frame: withId(answer, open.id) };
  }

  /** Returns the client's progress about a question, under the server's own token. */
  progress(notification: Frame, token: JsonRpcId): { readonly asker: Asker; readonly frame: Frame } | undefined {
    const open = this.#open.get(token);
    const frame = open?.progressToken && rewriteProgress(notification, open.progressToken);
    return open && frame && { asker: open.asker, frame };
  }

  /** Returns the withdrawal of a question as the client gets it. */
  withdrawn(asker: Asker, notification: Frame, serverId: JsonRpcId): Frame | undefined {
    for (const [id, open] of this.#open) {
      if (open.asker !== asker || open.serverId !== serverId) continue;
      this.#close(id, open);
      return rewriteServerCanceled(notification, id);
    }
    return undefined;
  }

  /** Forgets the questions of a server that is gone. Returns their ids, as the client knows them. */
  takeOf(asker: Asker): readonly JsonRpcId[] {
    const ids = [...this.#open].filter(([, open]) => open.asker === asker).map(([id]) => id);
    for (const id of ids) this.#open.delete(id);
    this.#counts.delete(asker);
    return ids;
  }

  #close(id: JsonRpcId, { asker }: Open<Asker>): void {
    this.#open.delete(id);
    this.#counts.set(asker, (this.#counts.get(asker) ?? 1) - 1);
  }
}

const TOO_MANY = new BridgeError(
  'ERR_SESSION_BUSY',
  `The client has ${MAX_OPEN} unanswered requests of this server, the most allowed; wait for answers before asking more.`,
);
