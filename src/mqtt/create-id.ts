/**
 * Makes a fresh MQTT client id of 32 hexadecimal digits: brokers have to accept letters and digits only, and servers on
 * microcontrollers keep a topic with two ids and the server name in 128 bytes. [MQTT 5 3.1.3.1]
 * @param randomId see `Deps`
 */
export function createMqttId(randomId: () => string): string {
  return Buffer.from(randomId(), 'base64url').toString('hex');
}
