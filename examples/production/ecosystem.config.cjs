module.exports = {
  apps: [{ name: 'webhooks', script: 'server.js', node_args: '--import ./metrics.js', kill_timeout: 30_000 }],
}
