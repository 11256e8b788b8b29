import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { LambdaHttpResponse } from '../../../adapters/aws-lambda.ts'
import { httpApiEvent } from '../../adapters/lambda-events.ts'

/** A function URL: it turns requests into events of payload 2.0, and passes on the answers. */
export async function functionUrl(invoke: (event: unknown) => Promise<unknown>) {
  const server = createServer(async (request, response) => {
    try {
      const event = await readEvent(request)
      const { statusCode, headers, body } = (await invoke(event)) as LambdaHttpResponse
      response.writeHead(statusCode, headers).end(body)
    } catch {
      // The request was cut off, or the function failed.
      response.writeHead(502).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks/media`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function readEvent(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  const [path = '', query = ''] = request.url?.split('?', 2) ?? []
  const { method = '', rawHeaders } = request
  const headers = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] as string] as const] : [],
  )
  return httpApiEvent({ method, path, query, headers, body: Buffer.concat(chunks) })
}
