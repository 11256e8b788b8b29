import { createServer } from 'node:http'
import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'
import { Webhook } from 'standardwebhooks'
import { path, secret } from '../deliveries.ts'
import { handle } from '../tally.ts'

export function octokit() {
  const webhooks = new Webhooks({ secret })
  webhooks.on('release', ({ payload }) => handle((payload as unknown as { media_id: string }).media_id))
  return createServer(createNodeMiddleware(webhooks, { path }))
}

export function standardWebhooks() {
  const webhook = new Webhook(secret)
  return createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.on('end', () => {
      try {
        const payload = webhook.verify(Buffer.concat(chunks), req.headers as Record<string, string>)
        res.writeHead(200).end()
        handle((payload as { media_id: string }).media_id).catch(console.error)
      } catch {
        res.writeHead(401).end()
      }
    })
  })
}
