import type { PropsWithChildren } from 'hono/jsx'

interface ShellProps {
  readonly title: string
  /** The path below which its assets are. */
  readonly assets: string
  /** The id of the element to which the first link skips, and its name. */
  readonly skipTo: readonly [id: string, name: string]
  /** `true`: a browser without script reads it again every 2 s. */
  readonly refreshes?: boolean | undefined
}

/** A document with the style and the script of its page. */
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

/** The line in which the script shows if the page is live. */
export function Connection() {
  return <p id="connection" role="status" data-script />
}
