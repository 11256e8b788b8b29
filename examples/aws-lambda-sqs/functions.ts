import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { Redis } from 'ioredis'
import { createReceiver, urlToken } from 'media-webhooks'
import { lambdaHandler, sqsHandler } from 'media-webhooks/aws-lambda'
import { redisStore } from 'media-webhooks/idempotency/redis'
import { queueInbox } from 'media-webhooks/inbox/queue'

const { WEBHOOK_TOKEN = '', QUEUE_URL = '', REDIS_URL = '' } = process.env
const sqs = new SQSClient({})

const receiver = createReceiver({
  verify: urlToken({ secret: WEBHOOK_TOKEN }),
  inbox: queueInbox({
    // A FIFO queue keeps each media item's events in order.
    send: (message) =>
      sqs.send(
        new SendMessageCommand({
          QueueUrl: QUEUE_URL,
          MessageBody: JSON.stringify(message),
          MessageGroupId: message.group,
          MessageDeduplicationId: message.deduplicationId,
        }),
      ),
    // Every sandbox must know which events are handled.
    store: redisStore({ client: new Redis(REDIS_URL) }),
  }),
})

receiver.on(
  'encoding.finished',
  async ({ mediaId, qualities }) => {
    console.log(`publish ${mediaId} in ${qualities.join(', ')}`)
  },
  { name: 'publish' },
)

/** The function of the function URL. */
export const receive = lambdaHandler(receiver)
/** The function that SQS invokes. */
export const consume = sqsHandler(receiver)
