import type {
  ALBHandler,
  APIGatewayProxyHandler,
  APIGatewayProxyHandlerV2,
  LambdaFunctionURLHandler,
  SQSHandler,
} from 'aws-lambda'
import { expectTypeOf, test } from 'vitest'
import { lambdaHandler, sqsHandler } from '../../adapters/aws-lambda.ts'
import { createReceiver, unverified } from '../../src/index.ts'

const receiver = createReceiver({ verify: unverified() })

test('The handlers fit the types of every event source', () => {
  expectTypeOf(lambdaHandler(receiver)).toExtend<APIGatewayProxyHandler>()
  expectTypeOf(lambdaHandler(receiver)).toExtend<APIGatewayProxyHandlerV2>()
  expectTypeOf(lambdaHandler(receiver)).toExtend<LambdaFunctionURLHandler>()
  expectTypeOf(lambdaHandler(receiver)).toExtend<ALBHandler>()
  expectTypeOf(sqsHandler(receiver)).toExtend<SQSHandler>()
  expectTypeOf(lambdaHandler(receiver)).not.toExtend<SQSHandler>()
})

test('They take a receiver, or a function that makes one', () => {
  lambdaHandler(() => receiver)
  lambdaHandler(async () => receiver)
  sqsHandler(() => receiver)
  sqsHandler(async () => receiver)
  // @ts-expect-error The parentheses are missing.
  lambdaHandler(createReceiver)
  // @ts-expect-error The parentheses are missing.
  sqsHandler(createReceiver)
  // @ts-expect-error It cannot handle.
  sqsHandler({ receive: receiver.receive })
})
