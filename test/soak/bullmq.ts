import { killRun } from '../inbox/bullmq/kill-run.ts'
import { RedisServer } from '../redis/redis-server.ts'

const kills = Number(process.argv[2] ?? 50)
const server = await RedisServer.start()
const report = await killRun(server, kills).finally(() => server.remove())
console.log(`bullmqInbox, three receivers on one queue, kill -9: ${JSON.stringify(report)}`)
if (report.lost > 0 || report.deadLetters > 0) process.exitCode = 1
