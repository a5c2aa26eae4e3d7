/** A URL as it may stand in logs and messages: userinfo, query and fragment can hold credentials. */
export function showUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}
