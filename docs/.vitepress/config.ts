import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { defineConfig, type MarkdownEnv, type MarkdownRenderer, type SiteConfig } from 'vitepress'
import { entries } from '../../entries.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8'))

const page = (text: string, link: string) => ({ text, link })

/** The guides, in the order in which a reader needs them. */
const guides = [
  {
    text: 'Start',
    items: [
      page('Getting started', '/getting-started'),
      page('Mount the receiver', '/mount'),
      page('Verify the sender', '/verify'),
      page('Other services', '/senders'),
      page('Recipes for services', '/recipes'),
      page('From a hand-written receiver', '/from-a-hand-written-receiver'),
      page('Compared with other tools', '/compared'),
    ],
  },
  {
    text: 'Inboxes',
    items: [
      page('Choose an inbox', '/inboxes'),
      page('Memory', '/inbox-memory'),
      page('SQLite', '/inbox-sqlite'),
      page('Postgres and PGlite', '/inbox-postgres'),
      page('BullMQ', '/inbox-bullmq'),
    ],
  },
  {
    text: 'Receive',
    items: [
      page('Handlers, retries and order', '/handlers'),
      page('Exactly once', '/exactly-once'),
      page('Duplicates and event keys', '/duplicates'),
      page('Events that never come', '/expect'),
    ],
  },
  {
    text: 'Serverless',
    items: [
      page('Platforms', '/platforms'),
      page('Queues', '/queues'),
      page('AWS Lambda', '/aws-lambda'),
      page('Cloudflare Workers', '/cloudflare'),
    ],
  },
  {
    text: 'Operate',
    items: [
      page('In production', '/production'),
      page('Operate it', '/operate'),
      page('The dashboard', '/dashboard'),
      page('Traces and metrics', '/telemetry'),
      page('Reconcile', '/reconcile'),
      page('Security', '/security'),
      page('Troubleshooting', '/troubleshooting'),
      page('Debug an inbox', '/debug-an-inbox'),
    ],
  },
  {
    text: 'Develop',
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
      page('Performance', '/performance'),
      page('Versions and support', '/versions'),
      page('Questions and answers', '/faq'),
      page('Changelog', '/changelog'),
      page('API reference', '/api/media-webhooks/'),
    ],
  },
]

/** The menu of the reference: each entry of the package with its symbols. */
const reference = entries.map(({ name }) => ({
  ...page(name.replace('media-webhooks/', ''), `/api/${name}/`),
  collapsed: true,
  items: ['functions', 'classes', 'interfaces', 'type-aliases', 'enumerations', 'variables'].flatMap((kind) => {
    const folder = `api/${name}/${kind}`
    if (!existsSync(`docs/${folder}`)) return []
    return readdirSync(`docs/${folder}`).map((file) => page(file.replace('.md', ''), `/${folder}/${file}`))
  }),
}))

/** Puts guides before the reference. The page of the very symbol that the reader looks for is still among the first. */
function boostDocument(id: string, term: string, stored?: Record<string, unknown>): number {
  if (!id.includes('/api/')) return 1
  return `${stored?.['title']}`.replace(/\W/g, '').toLowerCase() === term ? 0.45 : 0.15
}

/** Renders a page for the search. A symbol is found as one page, not once for each of its headings. */
function renderForSearch(source: string, env: MarkdownEnv, md: Pick<MarkdownRenderer, 'render'>): string {
  const html = md.render(source, env)
  return env.relativePath.startsWith('api/') ? html.replace(/<h[2-6].*?<\/h[2-6]>/gs, '') : html
}

/** Splits a text into words, as the search does by default. `Next.js` is also the word `nextjs`. */
function tokenize(text: string): string[] {
  const joined = text.match(/\w+\.js\b/g) ?? []
  return [...text.split(/[\n\r\p{Z}\p{P}]+/u), ...joined.map((word) => word.replace('.', ''))]
}

/** Writes the Markdown of each page beside its HTML, and `llms.txt` with the list of guides. */
async function writeMarkdown({ pages, srcDir, outDir, site }: SiteConfig): Promise<void> {
  for (const path of pages) await cp(join(srcDir, path), join(outDir, path))
  const lists = guides.map(({ text, items }) => {
    const links = items.map(({ text, link }) => `- [${text}](.${link.replace(/\/$/, '/index')}.md)`)
    return `## ${text}\n\n${links.join('\n')}\n`
  })
  await writeFile(join(outDir, 'llms.txt'), `# ${site.title}\n\n> ${site.description}\n\n${lists.join('\n')}`)
}

export default defineConfig({
  title: 'media-webhooks',
  description: 'Receives the webhooks of a media service inside your own server',
  buildEnd: writeMarkdown,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // Mermaid is larger, and is loaded where a page has a diagram.
  vite: { build: { chunkSizeWarningLimit: 1_000 } },
  markdown: {
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      // A long path or name may break in a narrow column of a table.
      const renderCode = md.renderer.rules.code_inline
      md.renderer.rules.code_inline = (tokens, index, ...rest) => {
        const code = renderCode?.(tokens, index, ...rest) ?? ''
        return (tokens[index]?.content.length ?? 0) > 20 ? code.replace(/(\w[/._])(?=\w)/g, '$1<wbr>') : code
      }
      const renderFence = md.renderer.rules.fence
      md.renderer.rules.fence = (tokens, index, ...rest) => {
        const { info = '', content = '' } = tokens[index] ?? {}
        if (info.trim() === 'mermaid') return `<MermaidDiagram source="${encodeURIComponent(content)}" />`
        return renderFence?.(tokens, index, ...rest) ?? ''
      }
    },
  },
  themeConfig: {
    nav: [page('Guide', '/getting-started'), page('API', '/api/media-webhooks/'), page(version, '/changelog')],
    sidebar: { '/': guides, '/api/': reference },
    search: {
      provider: 'local',
      options: { _render: renderForSearch, miniSearch: { options: { tokenize }, searchOptions: { boostDocument } } },
    },
    outline: [2, 3],
  },
})
