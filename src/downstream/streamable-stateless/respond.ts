import type { ServerResponse } from 'node:http';
import { JSON_TYPE } from '../../http/content-type.ts';
import type { ModernRefusal } from '../../mcp/validate-modern.ts';
import type { Frame, JsonRpcId } from '../../wire/frame.ts';
import { errorFrame } from '../../wire/write-message.ts';

/** Answers in JSON where no response has started. */
export function respondFrame(response: ServerResponse, status: number, { bytes }: Frame): void {
  response.writeHead(status, { 'Content-Type': JSON_TYPE, 'Content-Length': bytes.length }).end(bytes);
}

/** Refuses a message of a modern client. Without a readable id there is none. */
export function respondRefusal(response: ServerResponse, refusal: ModernRefusal, id: JsonRpcId | undefined): void {
  const { httpStatus, code, message, data } = refusal;
  respondFrame(response, httpStatus, errorFrame(id, { code, message: `The request was refused: ${message}.`, data }));
}
