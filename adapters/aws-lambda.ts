import { type LambdaHttpEvent, type LambdaHttpResponse, toDelivery, toResponse } from './aws-lambda/http-events.ts'
import { MountedReceiver, noReceiver, type ReceiverSource } from './shared/mounted-receiver.ts'

export type { HttpApiEvent, LambdaHttpEvent, LambdaHttpResponse, RestApiEvent } from './aws-lambda/http-events.ts'
export { type SqsBatchResponse, type SqsEvent, type SqsRecord, sqsHandler } from './aws-lambda/sqs.ts'

/**
 * Mounts a receiver in AWS Lambda behind API Gateway (REST or HTTP), a function URL or an Application Load Balancer.
 *
 * ```ts
 * export const receive = lambdaHandler(receiver)
 * ```
 *
 * Lambda freezes the sandbox after the answer, so use `queueInbox`, and {@link sqsHandler} to consume its queue. On
 * Lambda `createReceiver` throws if its inbox would lose events, and warns if it can lose them or handle them twice.
 * @param receiver the receiver, or a function (sync or async) that makes it at the first delivery. While it fails,
 * deliveries are answered 500 `internal`, the reason goes to the console, and the next delivery tries again.
 * @returns a function that rejects only for an event that is not an HTTP request
 * @throws WebhookError `invalid_option` without a receiver or a function
 */
export function lambdaHandler(receiver: ReceiverSource<[]>): (event: LambdaHttpEvent) => Promise<LambdaHttpResponse> {
  const mounted = new MountedReceiver('lambdaHandler', receiver)
  return async (event) => {
    const delivery = toDelivery(event)
    const resolved = mounted.ready ?? (await mounted.get([]))
    const answer = resolved === undefined ? noReceiver : await resolved.receive(delivery)
    return toResponse(event, delivery.method === 'HEAD' ? { ...answer, body: '' } : answer)
  }
}
