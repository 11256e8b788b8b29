import { ApiKeys } from './api-keys.tsx'
import { Deliveries } from './deliveries.tsx'
import { Header } from './header.tsx'
import { MediaSection } from './media.tsx'
import { NoticeLine } from './notice-line.tsx'
import type { PageState } from './page-state.ts'
import { Start } from './start.tsx'
import { Webhooks } from './webhooks.tsx'

/** The parts of the page that are kept up to date on their own, by their ids. */
export const sections = new Map([
  ['start', Start],
  ['webhooks', Webhooks],
  ['media', MediaSection],
  ['deliveries', Deliveries],
  ['api-keys', ApiKeys],
])

/** The whole page. */
export function Document({ page }: { page: PageState }) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>Media service emulator</title>
        <link rel="icon" href="/page/icon.svg" />
        <link rel="stylesheet" href="/page/style.css" />
        <script type="module" src="/page/browser.js" />
      </head>
      <body>
        <a class="skip" href="#deliveries-title">
          Skip to the deliveries
        </a>
        <Header page={page} />
        <NoticeLine notice={page.notice} view={page.view} />
        <main>
          <Start page={page} />
          <Webhooks page={page} />
          <MediaSection page={page} />
          <Deliveries page={page} />
          <ApiKeys page={page} />
        </main>
        <p id="news" class="unseen" role="status" data-script />
      </body>
    </html>
  )
}
