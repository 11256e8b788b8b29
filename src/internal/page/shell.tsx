import type { PropsWithChildren } from 'hono/jsx'

interface ShellProps {
  readonly title: string
  /** Base path of the assets. */
  readonly assets: string
  /** Target of the skip link. */
  readonly skipTo: readonly [id: string, name: string]
  /** Without JavaScript, the browser reloads every 2 s. */
  readonly refreshes?: boolean | undefined
}

/** The HTML document around a page. */
export function Shell({ title, assets, skipTo: [id, name], refreshes, children }: PropsWithChildren<ShellProps>) {
  return (
    <html lang="en" data-assets={assets}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href={`${assets}/icon.svg`} />
        <link rel="stylesheet" href={`${assets}/style.css`} />
        <script type="module" src={`${assets}/browser.js`} />
        {refreshes && (
          <noscript>
            <meta http-equiv="refresh" content="2" />
          </noscript>
        )}
      </head>
      <body>
        <a class="skip" href={`#${id}`}>
          Skip to {name}
        </a>
        {children}
        <p id="news" class="unseen" role="status" data-script />
      </body>
    </html>
  )
}

/** Where the script shows whether the page is live. */
export function Connection() {
  return <p id="connection" role="status" data-script />
}
