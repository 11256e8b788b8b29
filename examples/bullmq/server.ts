import { createBullBoard } from '@bull-board/api'
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter'
import { ExpressAdapter } from '@bull-board/express'
import { Queue } from 'bullmq'
import express from 'express'
import { Redis } from 'ioredis'
import { createReceiver, urlToken } from 'media-webhooks'
import { expressHandler } from 'media-webhooks/express'
import { bullmqInbox } from 'media-webhooks/inbox/bullmq'
import { closeOnSignals } from 'media-webhooks/node'

const { WEBHOOK_TOKEN = '', REDIS_URL = 'redis://127.0.0.1:6379', PORT = '3000', BOARD_PORT = '3001' } = process.env

// Start as many processes as you like. Each accepts deliveries and handles events from all of them.
const inbox = bullmqInbox({ connection: REDIS_URL, queue: 'media-webhooks' })
const receiver = createReceiver({ verify: urlToken({ secret: WEBHOOK_TOKEN }), inbox })

receiver.on('encoding.finished', async ({ mediaId, qualities }) => {
  console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
})

const app = express()
app.post('/webhooks/media', expressHandler(receiver))
const server = app.listen(Number(PORT), () => {
  console.log(`listening on ${(server.address() as { port: number }).port}`)
})

// The board shows the events' contents and lets anyone remove them, so it listens on this machine only.
const redis = new Redis(REDIS_URL, { maxRetriesPerRequest: null })
const queue = new Queue('media-webhooks', { connection: redis })
const serverAdapter = new ExpressAdapter()
createBullBoard({ queues: [new BullMQAdapter(queue)], serverAdapter })
const board = express()
  .use(serverAdapter.getRouter())
  .listen(Number(BOARD_PORT), '127.0.0.1', () => {
    console.log(`board on ${(board.address() as { port: number }).port}`)
  })

// On SIGTERM and SIGINT, finishes the running handlers. Waiting events stay in Redis, for another process or the next start.
closeOnSignals(server, receiver, {
  async onClosed() {
    board.close()
    await queue.close()
    redis.disconnect()
  },
})
