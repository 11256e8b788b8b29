import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import { Redis } from 'ioredis'
import { lambdaHandler, sqsHandler } from '../../../../adapters/aws-lambda.ts'
import { redisStore } from '../../../../src/idempotency/redis.ts'
import { queueInbox } from '../../../../src/inbox/queue.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { recordHandled } from '../../programs/record-handled.ts'

const { QUEUE_URL, REDIS_PORT } = process.env
const sqs = new SQSClient({})

const receiver = createReceiver({
  verify: unverified(),
  inbox: queueInbox({
    send: (message) =>
      sqs.send(
        new SendMessageCommand({
          QueueUrl: QUEUE_URL,
          MessageBody: JSON.stringify(message),
          MessageGroupId: message.group,
          MessageDeduplicationId: message.deduplicationId,
        }),
      ),
    store: redisStore({ client: new Redis(Number(REDIS_PORT)) }),
  }),
}).onAny(recordHandled)

export const receive = lambdaHandler(receiver)
export const consume = sqsHandler(receiver)
