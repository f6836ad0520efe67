// SPDX-License-Identifier: MIT
// Speaks to musterd with node-redis (RESP3) and ioredis, and prints what they got as JSON: node_client.mjs PORT
import { createClient } from 'redis';
import { Redis } from 'ioredis';

const port = Number(process.argv[2]);
const seen = {};

const nodeRedis = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: false } });
nodeRedis.on('error', (error) => { seen.error = String(error); });
await nodeRedis.connect();
seen.ping = await nodeRedis.ping();
seen.team = await nodeRedis.sendCommand(['TEAM.ADD', 'node', '-', 'NAME', 'Node']);
seen.employee = await nodeRedis.sendCommand(['EMPLOYEE.SET', 'n.1', 'DEPT', 'node']);
seen.checkin = await nodeRedis.sendCommand(['CHECKIN', 'n.1', 'IN']);
seen.statuses = await Promise.all(Array.from({ length: 100 }, () => nodeRedis.sendCommand(['STATUS', 'n.1'])));
seen.refused = await nodeRedis.sendCommand(['STATUS', 'nobody']).catch((error) => error.message);
await nodeRedis.close();

const io = new Redis({ host: '127.0.0.1', port, retryStrategy: () => null });
seen.ioPing = await io.ping();
seen.ioStatus = await io.call('STATUS', 'n.1');
await io.quit();

console.log(JSON.stringify(seen));
