import { BridgeError } from '../../errors.ts';
import { showUrl } from '../../http/shown-url.ts';

/** The request arrived, the answer did not. [spec 2026-07-28 transports/streamable-http] streams cannot be resumed. */
export function lostAnswer(url: URL, method: string | undefined, cause: BridgeError | undefined): BridgeError {
  const detail = cause === undefined ? '' : ` ${cause.message}`;
  return new BridgeError(
    'ERR_UPSTREAM_DELIVERY',
    `The server at ${showUrl(url)} ended its response before the answer to ${method ?? 'a message'}. Whether the call was carried out is not known, so it is not sent again.${detail}`,
    { cause, data: { delivery: 'unknown' } },
  );
}
