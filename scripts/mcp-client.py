#!/usr/bin/env python3
"""Asks `gnntop mcp` through the official Python client: what it lists, and a diagnosis.

usage: scripts/mcp-client.py GNNTOP RECORDING

Run it with a Python that has `mcp` from PyPI: version 1 speaks with a handshake, version 2 without one.
"""

import asyncio
import sys
from importlib.metadata import version

from mcp import StdioServerParameters


async def ask(call, list_tools) -> None:
    """Lists the tools and diagnoses the recording."""
    tools = await list_tools()
    print(f"mcp {version('mcp')}: {len(tools.tools)} tools: {', '.join(tool.name for tool in tools.tools)}")
    answer = await call("diagnose", {"run": sys.argv[2]})
    content = getattr(answer, "structured_content", None) or answer.structuredContent
    print(f"diagnose: {content['summary']}\nnext: {content['next_step']}")


async def main() -> None:
    """Speaks as this version of the client does."""
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"])
    if version("mcp").startswith("1."):
        from mcp import ClientSession
        from mcp.client.stdio import stdio_client

        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            await ask(session.call_tool, session.list_tools)
    else:
        from mcp import Client

        async with Client(server) as client:
            await ask(client.call_tool, client.list_tools)


asyncio.run(main())
