import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Frame } from '../wire/frame.ts';

/** A request of the modern era whose body was read, and that may have to be served elsewhere. */
export interface RoutedCall {
  readonly frame: Frame;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Serves it here. */
  readonly serve: () => void;
}

/** Leads requests without a session to the replica where what they continue is. */
export type RouteCall = (call: RoutedCall) => void;
