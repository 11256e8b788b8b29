import { setTimeout as sleep } from 'node:timers/promises'
import { lambdaHandler } from '../../../../adapters/aws-lambda.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { recordHandled } from '../../programs/record-handled.ts'

const { ACK, HANDLER_MS } = process.env

const receiver = createReceiver({ verify: unverified(), ack: ACK === 'handled' ? 'handled' : 'accepted' })
receiver.onAny(async (event, context) => {
  await sleep(Number(HANDLER_MS))
  await recordHandled(event, context)
})

export const receive = lambdaHandler(receiver)
