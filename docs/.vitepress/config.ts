import { defineConfig } from 'vitepress'
import { entries } from './entries.ts'

const page = (text: string, link: string) => ({ text, link })

/** The guides, in the order in which a reader needs them. */
const guides = [
  {
    text: 'Receive',
    items: [
      page('Getting started', '/getting-started'),
      page('Mount the receiver', '/mount'),
      page('Verify the sender', '/verify'),
      page('Handlers, retries and order', '/handlers'),
      page('Events that never come', '/expect'),
      page('Duplicates and event keys', '/duplicates'),
      page('Choose an inbox', '/inboxes'),
      page('Exactly once', '/exactly-once'),
      page('Platforms', '/platforms'),
      page('Queues', '/queues'),
      page('AWS Lambda', '/aws-lambda'),
      page('Cloudflare Workers', '/cloudflare'),
      page('Reconcile', '/reconcile'),
      page('Operate it', '/operate'),
      page('The dashboard', '/dashboard'),
      page('Traces and metrics', '/telemetry'),
    ],
  },
  {
    text: 'Develop and test',
    items: [
      page('The emulator', '/emulator'),
      page('Test your handlers', '/testing'),
      page('Client and registration', '/client'),
      page('Commands', '/commands'),
    ],
  },
  {
    text: 'Look up',
    items: [
      page('Configuration', '/configuration'),
      page('Errors', '/errors'),
      page('Troubleshooting', '/troubleshooting'),
      page('Performance', '/performance'),
      page('Security', '/security'),
    ],
  },
  {
    text: 'Inside',
    items: [page('Architecture', '/architecture'), page('Contributing', '/contributing')],
  },
  {
    text: 'API reference',
    collapsed: true,
    items: entries.map(([name]) => page(name, `/api/${name}`)),
  },
]

export default defineConfig({
  title: 'media-webhooks',
  description: 'Receives the webhooks of a media service inside your own server',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // Mermaid is larger, and is loaded where a page has a diagram.
  vite: { build: { chunkSizeWarningLimit: 1_000 } },
  markdown: {
    config(md) {
      const renderFence = md.renderer.rules.fence
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info = '', content = '' } = tokens[index] ?? {}
        if (info.trim() === 'mermaid') return `<MermaidDiagram source="${encodeURIComponent(content)}" />`
        return renderFence?.(tokens, index, ...rest) ?? ''
      }
    },
  },
  themeConfig: {
    nav: [page('Guide', '/getting-started'), page('API', '/api/media-webhooks'), page('Architecture', '/architecture')],
    sidebar: guides,
    search: { provider: 'local' },
    outline: [2, 3],
  },
})
