import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { md5, SqsError, SqsQueue, type SqsQueueOptions } from './queue.ts'

/** The parameters of the actions, as the vendor's SDK sends them. */
interface Parameters {
  readonly QueueUrl: string
  readonly MessageBody: string
  readonly MessageGroupId?: string
  readonly MessageDeduplicationId?: string
  readonly MaxNumberOfMessages?: number
  readonly WaitTimeSeconds?: number
  readonly VisibilityTimeout?: number
  readonly ReceiptHandle: string
}

/** A server that speaks SQS's JSON protocol (AWS JSON 1.0) on 127.0.0.1. */
export class SqsServer {
  readonly endpoint: string
  readonly #queues = new Map<string, SqsQueue>()
  readonly #server: ReturnType<typeof createServer>
  /** While it is `true`, every request is answered 503. */
  isDown = false

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  static async start(): Promise<SqsServer> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const sqs = new SqsServer(server)
    server.on('request', async (request, response) => {
      const { status, answer } = await sqs.#answer(request)
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(answer))
    })
    return sqs
  }

  create(options: SqsQueueOptions): { readonly queue: SqsQueue; readonly url: string } {
    const queue = new SqsQueue(options)
    this.#queues.set(options.name, queue)
    return { queue, url: `${this.endpoint}/000000000000/${options.name}` }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(request: IncomingMessage): Promise<{ readonly status: number; readonly answer: object }> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (this.isDown) return { status: 503, answer: { __type: 'ServiceUnavailable' } }
    try {
      const action = String(request.headers['x-amz-target']).replace('AmazonSQS.', '')
      return { status: 200, answer: await this.#act(action, JSON.parse(Buffer.concat(chunks).toString())) }
    } catch (error) {
      if (!(error instanceof SqsError)) throw error
      return { status: 400, answer: { __type: `com.amazonaws.sqs#${error.code}`, message: error.message } }
    }
  }

  async #act(action: string, parameters: Parameters): Promise<object> {
    const queue = this.#queues.get(parameters.QueueUrl.split('/').at(-1) as string)
    if (queue === undefined) throw new SqsError('QueueDoesNotExist', 'The specified queue does not exist.')
    const { MessageBody, MessageGroupId, MessageDeduplicationId, ReceiptHandle, VisibilityTimeout } = parameters
    switch (action) {
      case 'SendMessage':
        return {
          MessageId: queue.send(MessageBody, MessageGroupId, MessageDeduplicationId),
          MD5OfMessageBody: md5(MessageBody),
        }
      case 'ReceiveMessage':
        return this.#receive(queue, parameters)
      case 'DeleteMessage':
        queue.delete(ReceiptHandle)
        return {}
      case 'ChangeMessageVisibility':
        queue.changeVisibility(ReceiptHandle, (VisibilityTimeout as number) * 1_000)
        return {}
      default:
        throw new SqsError('UnsupportedOperation', `this server has no ${action}`)
    }
  }

  async #receive(queue: SqsQueue, { MaxNumberOfMessages = 1, WaitTimeSeconds = 0, VisibilityTimeout }: Parameters) {
    const visibilityMs = VisibilityTimeout === undefined ? undefined : VisibilityTimeout * 1_000
    const messages = await queue.receive(MaxNumberOfMessages, WaitTimeSeconds * 1_000, visibilityMs)
    return {
      Messages: messages.map(({ messageId, body, group, receiveCount, receiptHandle }) => ({
        MessageId: messageId,
        Body: body,
        MD5OfBody: md5(body),
        ReceiptHandle: receiptHandle,
        Attributes: { ApproximateReceiveCount: `${receiveCount}`, ...(group && { MessageGroupId: group }) },
      })),
    }
  }
}
