import { setTimeout as sleep } from 'node:timers/promises'
import { lambdaHandler } from '../../../../adapters/aws-lambda.ts'
import { createReceiver, unverified } from '../../../../src/index.ts'
import { recordHandled } from '../../programs/record-handled.ts'

const { ACK, CHECK, HANDLER_MS } = process.env

const receiver = createReceiver({ verify: unverified(), ack: ACK === 'handled' ? 'handled' : 'accepted' })
receiver.onAny(async (event, context) => {
  await sleep(Number(HANDLER_MS))
  await recordHandled(event, context)
})

// A part of a receiver has no setup that could be checked.
export const receive = lambdaHandler(CHECK === 'off' ? { receive: receiver.receive } : receiver)
