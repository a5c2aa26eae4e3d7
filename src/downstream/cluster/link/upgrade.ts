/** How an ordinary request of HTTP/1.1 becomes a link between two replicas. */

/** What a replica asks to go on with. [RFC 9110 7.8] */
export const LINK_PROTOCOL = 'mcp-portage-link';
/** What the two show each other with the request and its answer. Lower case, as Node reads it. */
export const LINK_HEADER = 'mcp-portage-link';
