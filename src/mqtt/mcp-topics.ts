/** The topics and user properties of MCP over MQTT, in the form of EMQX's specification of 2025-06. */
import { asFields } from '../mcp/vocabulary/payload.ts';
import { isMqttId, isServerName } from './names.ts';

/** A server as its topics name it: the MQTT client id of an instance, and the name of the service. */
export interface ServerAddress {
  readonly serverId: string;
  readonly serverName: string;
}

const SERVER_PRESENCE = '$mcp-server/presence/';

/** Where a client sends its `initialize`. */
export function controlTopic({ serverId, serverName }: ServerAddress): string {
  return `$mcp-server/${serverId}/${serverName}`;
}

/** Where a server says, in a retained message, that it is online. An empty message says that it is not. */
export function presenceTopic({ serverId, serverName }: ServerAddress): string {
  return `${SERVER_PRESENCE}${serverId}/${serverName}`;
}

/** Where servers of these names say that they are online. */
export function presenceFilter(nameFilter: string): string {
  return `${SERVER_PRESENCE}+/${nameFilter}`;
}

/** Where a server tells all clients of this instance that a list has changed. */
export function capabilityTopic({ serverId, serverName }: ServerAddress): string {
  return `$mcp-server/capability/${serverId}/${serverName}`;
}

export function clientPresenceTopic(clientId: string): string {
  return `$mcp-client/presence/${clientId}`;
}

export function clientCapabilityTopic(clientId: string): string {
  return `$mcp-client/capability/${clientId}`;
}

/** Where everything else goes, in both directions. */
export function rpcTopic(clientId: string, { serverId, serverName }: ServerAddress): string {
  return `$mcp-rpc/${clientId}/${serverId}/${serverName}`;
}

/** Returns the server that a presence topic is about; undefined: it is another topic, or an id or name is not allowed. */
export function readPresenceTopic(topic: string): ServerAddress | undefined {
  if (!topic.startsWith(SERVER_PRESENCE)) return undefined;
  const rest = topic.slice(SERVER_PRESENCE.length);
  const slash = rest.indexOf('/');
  const [serverId, serverName] = [rest.slice(0, slash), rest.slice(slash + 1)];
  return slash > 0 && isMqttId(serverId) && isServerName(serverName) ? { serverId, serverName } : undefined;
}

// ---- user properties

export type Component = 'mcp-client' | 'mcp-server';

/** User properties by name. A name that occurs several times has all its values. */
export type UserProperties = Readonly<Record<string, string | readonly string[]>>;

const COMPONENT_TYPE = 'MCP-COMPONENT-TYPE';
const CLIENT_ID = 'MCP-MQTT-CLIENT-ID';
const META = 'MCP-META';
const BRIDGE_MARK = 'MCP-PORTAGE-BRIDGE';
/** Suggested by brokers when they accept a connection. */
const SUGGESTED_NAME = 'MCP-SERVER-NAME';
const SUGGESTED_FILTERS = 'MCP-SERVER-NAME-FILTERS';
/** Number of filters that are subscribed to. A broker may suggest any number. */
const MAX_FILTERS = 32;

/** The properties of each message. */
export function messageProperties(component: Component, clientId: string): UserProperties {
  return { [COMPONENT_TYPE]: component, [CLIENT_ID]: clientId };
}

/**
 * Returns the properties of a message that may open a session, sent by a bridge with this mark. A bridge that receives its own mark
 * is its own server by way of the broker, and would call itself endlessly.
 */
export function markedProperties(properties: UserProperties, mark: string | undefined): UserProperties {
  return mark === undefined ? properties : { ...properties, [BRIDGE_MARK]: mark };
}

/** The mark of the bridge that has sent a message; undefined: it has none. */
export function markOf(properties: UserProperties): string | undefined {
  return single(properties[BRIDGE_MARK]);
}

/** The properties of a connection. */
export function connectionProperties(component: Component, implementation: object): UserProperties {
  return { [COMPONENT_TYPE]: component, [META]: JSON.stringify(implementation) };
}

/** The sender that a message names; undefined: it names none, as those of servers in C. */
export function senderOf(properties: UserProperties): string | undefined {
  return single(properties[CLIENT_ID]);
}

/** Returns false if the message names another sender than this, or another kind of one. */
export function mayBeFrom(properties: UserProperties, component: Component, clientId: string): boolean {
  const type = properties[COMPONENT_TYPE];
  const id = properties[CLIENT_ID];
  return (type === undefined || type === component) && (id === undefined || id === clientId);
}

/** The name that the broker wants a server to use; undefined: it suggests none, or one that is not allowed. */
export function suggestedName(properties: UserProperties): string | undefined {
  const name = single(properties[SUGGESTED_NAME]);
  return name !== undefined && isServerName(name) ? name : undefined;
}

/** The filters for server names that the broker wants a client to use; undefined: it suggests none that can be read. */
export function suggestedFilters(properties: UserProperties): readonly string[] | undefined {
  const text = single(properties[SUGGESTED_FILTERS]);
  const list = text === undefined ? undefined : parse(text);
  if (!Array.isArray(list) || list.length === 0) return undefined;
  const filters = list.filter((filter) => typeof filter === 'string' && isNameFilter(filter));
  return filters.slice(0, MAX_FILTERS);
}

function isNameFilter(text: string): boolean {
  const levels = text.split('/');
  const isWellFormed = levels.every(
    (level, index) => level === '+' || (level === '#' && index === levels.length - 1) || isMqttId(level),
  );
  return isWellFormed;
}

function single(value: UserProperties[string] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

// ---- messages

const ONLINE = 'notifications/server/online';
export const DISCONNECTED = 'notifications/disconnected';
/** Longest presence that is read. */
const MAX_PRESENCE_BYTES = 64 * 1024;

/** Returns true if the retained message of a presence topic says that the server is online. */
export function saysOnline(payload: Buffer): boolean {
  if (payload.length === 0 || payload.length > MAX_PRESENCE_BYTES) return false;
  const message = asFields(parse(payload.toString('utf8')));
  return message?.jsonrpc === '2.0' && message.method === ONLINE && message.id === undefined;
}

export function onlineMessage(serverName: string, description: string): Buffer {
  const params = { server_name: serverName, description };
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: ONLINE, params }));
}

export function disconnectedMessage(): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: DISCONNECTED }));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
